package inspect_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/registry"
)

// asked is the status of the answer to a request that came in at an address.
func asked(h http.Handler, local string, r *http.Request) int {
	if local != "" {
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			panic(err)
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestRequestsThatAreNotAnswered(t *testing.T) {
	plain := newWorld(t, registry.Config{}, inspect.Config{}).h
	remote := newWorld(t, registry.Config{}, inspect.Config{Token: "secret", Remote: true}).h
	careless := newWorld(t, registry.Config{}, inspect.Config{Remote: true}).h // without a token
	const here, there = "127.0.0.1:8080", "192.0.2.7:8080"
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, test := range []struct {
		name         string
		handler      http.Handler
		local        string
		method, path string
		host         string
		header       http.Header
		body         string
		want         int
	}{
		{"the address", plain, here, "GET", "/stats.json", "127.0.0.1:8080", nil, "", 200},
		{"its name", plain, here, "GET", "/stats.json", "localhost:8080", nil, "", 200},
		{"its name in capitals", plain, here, "GET", "/stats.json", "LOCALHOST:8080", nil, "", 200},
		{"another loopback address", plain, here, "GET", "/stats.json", "127.9.9.9:8080", nil, "", 200},
		{"version 6", plain, "[::1]:8080", "GET", "/stats.json", "[::1]:8080", nil, "", 200},
		{"the head only", plain, here, "HEAD", "/stats.json", "127.0.0.1:8080", nil, "", 200},
		{"port 80 unsaid", plain, "127.0.0.1:80", "GET", "/", "localhost", nil, "", 200},
		{"version 6 with port 80 unsaid", plain, "[::1]:80", "GET", "/", "[::1]", nil, "", 200},
		{"no connection", plain, "", "GET", "/", "localhost:1", nil, "", 200},

		{"another name", plain, here, "GET", "/stats.json", "evil.example:8080", nil, "", 421},
		{"a name that ends as this", plain, here, "GET", "/", "evil.localhost:8080", nil, "", 421},
		{"a name that begins as this", plain, here, "GET", "/", "127.0.0.1.evil.example:8080", nil, "", 421},
		{"another port", plain, here, "GET", "/", "127.0.0.1:8081", nil, "", 421},
		{"no port", plain, here, "GET", "/", "127.0.0.1", nil, "", 421},
		{"no host", plain, here, "GET", "/", "", nil, "", 421},
		{"an address of the net", plain, here, "GET", "/", "192.0.2.7:8080", nil, "", 421},
		{"another name, no connection", plain, "", "GET", "/", "evil.example", nil, "", 421},
		{"zero", plain, here, "GET", "/", "0.0.0.0:8080", nil, "", 421},

		{"from afar", plain, there, "GET", "/", "192.0.2.7:8080", nil, "", 403},
		{"from afar as loopback", plain, there, "GET", "/", "127.0.0.1:8080", nil, "", 403},
		{"from afar without a token configured", careless, there, "GET", "/", "192.0.2.7:8080", nil, "", 403},
		{"from afar, allowed, the page", remote, there, "GET", "/", "192.0.2.7:8080", nil, "", 200},
		{"from afar, allowed, no token", remote, there, "GET", "/stats.json", "192.0.2.7:8080", nil, "", 401},
		{"from afar, allowed, a wrong token", remote, there, "GET", "/metrics", "192.0.2.7:8080", header("Airlock-Token", "Secret"), "", 401},
		{"from afar, allowed", remote, there, "GET", "/stats.json", "192.0.2.7:8080", header("Airlock-Token", "secret"), "", 200},
		{"from afar, another name", remote, there, "GET", "/", "evil.example:8080", header("Airlock-Token", "secret"), "", 421},
		{"from afar, loopback's name", remote, there, "GET", "/", "localhost:8080", header("Airlock-Token", "secret"), "", 421},
		{"from afar, other's address", remote, there, "GET", "/", "192.0.2.8:8080", header("Airlock-Token", "secret"), "", 421},

		{"the page's own script", plain, here, "GET", "/events2", "127.0.0.1:8080", header("Sec-Fetch-Site", "same-origin"), "", 404},
		{"typed by hand", plain, here, "GET", "/", "127.0.0.1:8080", header("Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"), "", 200},
		{"a link elsewhere", plain, here, "GET", "/", "127.0.0.1:8080", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), "", 200},
		{"a frame elsewhere", plain, here, "GET", "/", "127.0.0.1:8080", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), "", 403},
		{"a script elsewhere", plain, here, "GET", "/stats.json", "127.0.0.1:8080", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), "", 403},
		{"a script of another port", plain, here, "GET", "/stats.json", "127.0.0.1:8080", header("Sec-Fetch-Site", "same-site"), "", 403},
		{"another origin", plain, here, "GET", "/stats.json", "127.0.0.1:8080", header("Origin", "http://evil.example"), "", 403},
		{"another port's origin", plain, here, "GET", "/stats.json", "127.0.0.1:8080", header("Origin", "http://127.0.0.1:3000"), "", 403},
		{"no origin that has a name", plain, here, "GET", "/stats.json", "127.0.0.1:8080", header("Origin", "null"), "", 403},
		{"its own origin", plain, here, "GET", "/stats.json", "127.0.0.1:8080", header("Origin", "http://127.0.0.1:8080"), "", 200},

		{"POST where one reads", plain, here, "POST", "/stats.json", "127.0.0.1:8080", nil, "", 405},
		{"PUT", plain, here, "PUT", "/", "127.0.0.1:8080", nil, "", 405},
		{"DELETE", plain, here, "DELETE", "/metrics", "127.0.0.1:8080", nil, "", 405},
		{"TRACE", plain, here, "TRACE", "/metrics", "127.0.0.1:8080", nil, "", 405},

		{"a body where one reads", plain, here, "GET", "/", "127.0.0.1:8080", nil, "x", 413},
		{"a large header", plain, here, "GET", "/", "127.0.0.1:8080", header("X-Large", strings.Repeat("x", 20<<10)), "", 431},
		{"a long address", plain, here, "GET", "/?" + strings.Repeat("x", 3000), "127.0.0.1:8080", nil, "", 414},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
			r.Host = test.host
			if test.header != nil {
				r.Header = test.header
			}
			assert.Equal(t, test.want, asked(test.handler, test.local, r))
		})
	}
}
