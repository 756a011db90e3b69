// Package inspect shows a running engine to people and to monitoring: a page with the health of the registry, its archetypes,
// pools and world, and the same figures as JSON and for Prometheus.
//
//	handler := inspect.New(engine, inspect.Config{Pools: []pool.Source{prefabs}})
//	defer handler.Close()
//	err := handler.Serve(ctx, listener) // or http.Serve, or a mux with http.StripPrefix
//
// # What it costs
//
// Nobody waits for Logic, and Logic for nobody: figures are the copies that the registry and the engine keep for others,
// the world is a published frame. They are collected at most some ten times a second however many ask, and all get
// the same bytes. Only for the chunk map and for the page of an entity Logic runs a callback in its window, while
// somebody looks at them, a few times a second, and nothing of the state changes with it. Logic that hangs is told of: by whom, and
// since when.
//
// # Who may ask
//
// The handler serves loopback only, whatever it listens on, unless [Config.Remote] says otherwise. Where a request came in, the server
// says in its context ([http.LocalAddrContextKey]), as net/http does; one of which nobody says that is refused. Who puts a proxy before
// the page lets in whom the proxy lets in. It answers no request that a
// page of somebody else's has a browser make: the Host must be loopback with the right port, the origin its own. There
// are no actions without a [Config.Token]; with one they are asked for with POST, bring it in a header, and are logged.
//
// # Life of a Handler
//
// New starts one goroutine, which collects twice a second for the charts. It ends with Close, or with the engine; so do streams.
// After the engine has ended the handler goes on to show the last figures.
package inspect
