package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheProgramFindsWhatItShould(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out))
	require.Equal(t, `t = 1.0: 51 things to draw, the highest at 4.70; the cat is at -0.90, drops on it: 0
t = 2.0: 101 things to draw, the highest at 4.39; the cat is at -0.08, drops on it: 0
t = 3.0: 151 things to draw, the highest at 4.47; the cat is at 1.12, drops on it: 3
t = 4.0: 180 things to draw, the highest at 4.69; the cat is at 2.32, drops on it: 4
t = 5.0: 177 things to draw, the highest at 4.54; the cat is at 3.52, drops on it: 1
`, out.String())
}
