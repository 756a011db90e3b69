package inspect

import (
	"embed"
	"net/http"
	"strings"
)

// The page: nothing of it comes from elsewhere, and nothing is built.
//
//go:embed assets
var assets embed.FS

// page answers with the page itself.
func page(w http.ResponseWriter, _ *http.Request) { serveAsset(w, "index.html") }

// asset answers with what the page is made of.
func asset(w http.ResponseWriter, r *http.Request) { serveAsset(w, r.PathValue("name")) }

func serveAsset(w http.ResponseWriter, name string) {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	kind := "text/html; charset=utf-8"
	switch {
	case strings.HasSuffix(name, ".css"):
		kind = "text/css; charset=utf-8"
	case strings.HasSuffix(name, ".js"):
		kind = "text/javascript; charset=utf-8"
	case strings.HasSuffix(name, ".svg"):
		kind = "image/svg+xml"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data) // a client that has gone is no failure
}
