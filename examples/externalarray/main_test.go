package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheArrayFollows(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out))
	require.Equal(t, `at first: 20000 things, 20000 of them with their own body, 20000 bodies, indices below 20480
thinned: 2000 things, 2000 of them with their own body, 2000 bodies, indices below 20480
1000 get a component
marked: 2000 things, 2000 of them with their own body, 2000 bodies, indices below 21632
1953 moves in 1 runs
compacted: 2000 things, 2000 of them with their own body, 2000 bodies, indices below 2176
`, out.String())
}
