package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const tokenHeader = "Airlock-Token"

// writeWithin bounds each write: a client that takes nothing for so long has gone.
const writeWithin = 5 * time.Second

// guard decides which requests are answered at all. It does not change.
type guard struct {
	cross  *http.CrossOriginProtection
	token  [sha256.Size]byte
	tokens bool // there is one
	remote bool
}

func newGuard(c Config) guard {
	return guard{
		cross:  http.NewCrossOriginProtection(),
		token:  sha256.Sum256([]byte(c.Token)),
		tokens: c.Token != "",
		remote: c.Remote && c.Token != "",
	}
}

// refusal is why a request is not answered.
type refusal struct {
	status int
	reason string
}

// check finds what is wrong with a request, wherever it goes.
func (g *guard) check(r *http.Request) *refusal {
	switch {
	case headerBytes(r.Header) > mostHeaderBytes:
		return &refusal{http.StatusRequestHeaderFieldsTooLarge, "the header is too large"}
	case len(r.RequestURI) > mostURLBytes || len(r.URL.RawQuery) > mostURLBytes:
		return &refusal{http.StatusRequestURITooLong, "the address is too long"}
	case !isLocal(r) && !g.remote:
		return &refusal{http.StatusForbidden, "this page is for the machine it runs on"}
	case !hostFits(r):
		return &refusal{http.StatusMisdirectedRequest, "this page has another name: use its address and port"}
	case !g.sameOrigin(r):
		return &refusal{http.StatusForbidden, "another origin asks"}
	case r.ContentLength > mostBodyBytes, safe(r.Method) && r.ContentLength != 0:
		return &refusal{http.StatusRequestEntityTooLarge, "the body is too large"}
	}
	return nil
}

func headerBytes(h http.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// elsewhere is the end of a connection of which nobody knows where it ends.
var elsewhere = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)

// localAddr is the end of the connection that the request came in by; invalid if that is a socket of this machine, which has no
// address. Whoever listens in another way than by TCP, for HTTP/3 or through a tunnel, says where in its own words: what is no
// address then is not this machine. Nor is what nobody has said: a request of FastCGI, say, comes by way of a server that all the
// world may reach, and has the Host that the world gave it.
func localAddr(r *http.Request) netip.AddrPort {
	switch a := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.UnixAddr:
		return netip.AddrPort{}
	case net.Addr:
		if p, err := netip.ParseAddrPort(a.String()); err == nil {
			return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
		}
	}
	return elsewhere
}

// isLocal says whether a request came to a loopback address, which only this machine can.
func isLocal(r *http.Request) bool {
	a := localAddr(r)
	return !a.IsValid() || a.Addr().IsLoopback()
}

// hostFits says whether a request was meant for here. A page elsewhere can have its name resolve to this machine, but the browser
// still says that name.
func hostFits(r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil { // no port
		host, port = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]"), "80"
		if r.TLS != nil {
			port = "443"
		}
	}
	here := localAddr(r)
	if here.IsValid() && port != strconv.Itoa(int(here.Port())) {
		return false
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case isLocal(r):
		return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
	default:
		return err == nil && addr.Unmap() == here.Addr()
	}
}

// sameOrigin refuses what a page of another origin has a browser ask for. Safe requests are held to the same rule as
// others, but that a person may follow a link to the page.
func (g *guard) sameOrigin(r *http.Request) bool {
	if safe(r.Method) && r.URL.Path == "/" && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" {
		return true
	}
	unsafe := *r
	unsafe.Method = http.MethodPost
	return g.cross.Check(&unsafe) == nil
}

// knows says whether a request brings the token.
func (g *guard) knows(r *http.Request) bool {
	got := sha256.Sum256([]byte(r.Header.Get(tokenHeader)))
	return subtle.ConstantTimeCompare(got[:], g.token[:]) == 1 && g.tokens
}

// secure sets what goes with every answer: its values in one piece of memory, which is of this answer alone, for whoever wraps the
// handler may change it.
func secure(h http.Header) {
	v := &[...]string{
		"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", "nosniff", "DENY", "no-referrer",
		"same-origin", "same-origin", "no-store",
	}
	for i, name := range [len(v)]string{
		"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy",
		"Cross-Origin-Resource-Policy", "Cross-Origin-Opener-Policy", "Cache-Control",
	} {
		h[name] = v[i : i+1 : i+1]
	}
}

// setWriteDeadline gives the next writes their time. What is no connection has none.
func setWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
}

// setReadDeadline gives a body its time: the server reads the rest of one, too, that nobody has asked for. Who sends none may take
// for ever, as streams do.
func setReadDeadline(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(writeWithin))
	}
}
