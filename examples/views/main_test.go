package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheProgramFindsWhatItShould(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out))
	require.Equal(t, `frame 1: 100 burn, the first has 4 left
frame 2: 100 burn, the first has 3 left
frame 3: 100 burn, the first has 2 left
frame 4: 100 burn, the first has 1 left
frame 5: 100 burn, the first has 0 left
frame 6: 0 burn, the first has 0 left
frame 7: 0 burn, the first has 0 left
frame 8: 0 burn, the first has 0 left
frame 9: 0 burn, the first has 0 left
frame 10: registry: stale handle
after ten frames the others are at 4995000 together
`, out.String())
}
