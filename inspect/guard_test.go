package inspect_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// via is a request that came in at an address.
func via(addr net.Addr, r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
}

// request is one of this machine.
func request(ctx context.Context, method, path string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, path, body)
	r.Host = "localhost"
	return via(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, r)
}

// asked is the status of the answer to a request that came in at an address, or at none.
func asked(h http.Handler, local string, r *http.Request) int {
	if local != "" {
		addr, err := net.ResolveTCPAddr("tcp", local)
		if err != nil {
			panic(err)
		}
		r = via(addr, r)
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

		{"another name", plain, here, "GET", "/stats.json", "evil.example:8080", nil, "", 421},
		{"a name that ends as this", plain, here, "GET", "/", "evil.localhost:8080", nil, "", 421},
		{"a name that begins as this", plain, here, "GET", "/", "127.0.0.1.evil.example:8080", nil, "", 421},
		{"another port", plain, here, "GET", "/", "127.0.0.1:8081", nil, "", 421},
		{"no port", plain, here, "GET", "/", "127.0.0.1", nil, "", 421},
		{"no host", plain, here, "GET", "/", "", nil, "", 421},
		{"an address of the net", plain, here, "GET", "/", "192.0.2.7:8080", nil, "", 421},
		{"zero", plain, here, "GET", "/", "0.0.0.0:8080", nil, "", 421},

		{"from afar", plain, there, "GET", "/", "192.0.2.7:8080", nil, "", 403},
		{"from afar as loopback", plain, there, "GET", "/", "127.0.0.1:8080", nil, "", 403},
		{"from afar without a token configured", careless, there, "GET", "/", "192.0.2.7:8080", nil, "", 403},
		{"from nobody knows where", plain, "", "GET", "/", "localhost", nil, "", 403},
		{"from nobody knows where, allowed, as loopback", remote, "", "GET", "/", "localhost", header("Airlock-Token", "secret"), "", 421},
		{"from nobody knows where, allowed, by name", remote, "", "GET", "/", "evil.example", header("Airlock-Token", "secret"), "", 421},
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

// address is where a connection ends that is none of TCP.
type address string

func (address) Network() string  { return "tunnel" }
func (a address) String() string { return string(a) }

// A listener that is none of TCP says in its own words where its connections end.
func TestWhatIsNoAddressIsNotThisMachine(t *testing.T) {
	h := newWorld(t, registry.Config{}, inspect.Config{}).h
	for addr, want := range map[net.Addr]int{
		nil:                              http.StatusForbidden,
		address("tunnel to afar"):        http.StatusForbidden,
		address(""):                      http.StatusForbidden,
		address("192.0.2.7:8080"):        http.StatusForbidden,
		address("127.0.0.1:8080"):        http.StatusOK,
		&net.UnixAddr{Name: "/run/sock"}: http.StatusOK,
		&net.UDPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8080}:    http.StatusForbidden, // HTTP/3
		&net.UDPAddr{IP: net.IPv6loopback, Port: 8080}:          http.StatusOK,
		&net.TCPAddr{IP: net.IPv6linklocalallnodes, Port: 8080}: http.StatusForbidden,
		&net.TCPAddr{}: http.StatusForbidden,
	} {
		r := httptest.NewRequest("GET", "/stats.json", nil)
		r.Host = "localhost:8080"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, via(addr, r))
		assert.Equal(t, want, w.Code, "%T %v", addr, addr)
	}
}

func TestThePortThatIsUnsaidIsThatOfTheScheme(t *testing.T) {
	h := newWorld(t, registry.Config{}, inspect.Config{}).h
	r := httptest.NewRequest("GET", "https://localhost/stats.json", nil) // with TLS
	assert.Equal(t, http.StatusOK, asked(h, "127.0.0.1:443", r))
	assert.Equal(t, http.StatusMisdirectedRequest, asked(h, "127.0.0.1:80", r))
}

// deadlines is a connection that keeps its deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = t
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = t
	return nil
}

// slowly is a body that takes its time.
type slowly struct{ io.Reader }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(2 * time.Second)
	return s.Reader.Read(p)
}

// A body has its time, also one that nobody reads, for then the server does. An answer has its own, however long the body took.
func TestBodiesAndAnswersHaveTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{})
		require.NoError(t, err)
		h := inspect.New(e, inspect.Config{Token: "secret", Logger: slog.New(slog.DiscardHandler)})
		defer func() {
			require.NoError(t, h.Close())
			require.NoError(t, e.Stop())
		}()
		for _, test := range []struct {
			name, path, token string
			body              io.Reader
			want              int
			within, ended     bool // whether the body had a bound, and whether it was lifted when the body was there
		}{
			{"an action", "/actions/resume", "secret", slowly{strings.NewReader("{}")}, 200, true, true},
			{"no token", "/actions/resume", "", slowly{strings.NewReader("{}")}, 401, true, false},
			{"no such place", "/nothing", "secret", slowly{strings.NewReader("{}")}, 404, true, false},
			{"no body", "/events2", "", nil, 404, false, false},
		} {
			asks := request(t.Context(), "POST", test.path, test.body)
			asks.Header.Set("Content-Type", "application/json")
			asks.Header.Set("Airlock-Token", test.token)
			began, w := time.Now(), &deadlines{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(w, asks)
			assert.Equal(t, test.want, w.Code, test.name)
			assert.Equal(t, test.within && !test.ended, w.read.Equal(began.Add(5*time.Second)), test.name)
			assert.Equal(t, time.Now().Add(5*time.Second), w.write, test.name)
		}
	})
}
