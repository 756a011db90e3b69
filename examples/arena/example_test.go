package arena_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/airlock-ecs/airlock/examples/arena"
)

func ExampleServer() {
	server, err := arena.New(arena.Config{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan arena.Totals)
	go func() {
		sum, err := server.Run(ctx)
		if err != nil {
			fmt.Println(err)
		}
		done <- sum
	}()

	conn, err := net.Dial("tcp", server.Addr().String()) // or: nc
	if err == nil {
		io.WriteString(conn, "join bob\nfire 3 4\nfire north\nquit\n")
		io.Copy(os.Stdout, conn)
		conn.Close()
	}
	stop()
	sum := <-done
	fmt.Println("players:", sum.Joined, "arrows:", sum.Fired, "adds up:", sum.Check() == nil)
	// Output:
	// ok airlock arena: join NAME, fire DX DY, move DX DY, look, help, quit
	// ok bob is N0:1.1, at 31.0 162.5
	// ok
	// error: write it like this, and nothing else on the line: fire DX DY
	// bye
	// players: 1 arrows: 1 adds up: true
}
