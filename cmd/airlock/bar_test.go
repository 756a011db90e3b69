package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestABarOverwritesItselfAndIsForTerminals(t *testing.T) {
	var out bytes.Buffer
	b := newBar(stderrWriter{&out}, "frame")
	b.next = time.Time{}
	b.show(1, 2)
	b.end()
	assert.Empty(t, out.String(), "no terminal")

	b.on = true
	b.show(1, 4)
	b.show(2, 4) // too soon
	b.show(4, 4)
	b.end()
	assert.Equal(t, "\r[======                  ] frame 1 of 4\r[========================] frame 4 of 4\n", out.String())

	out.Reset()
	b = &bar{out: &out, on: true, unit: "step", next: time.Now().Add(time.Hour)}
	b.show(3, 3)
	b.end()
	assert.Empty(t, out.String(), "over at once")
	b.draw(7, "a long text")
	b.draw(-1, "short")
	lines := strings.Split(out.String(), "\r")
	assert.Equal(t, len(lines[1]), len(lines[2]), "the rest is blanked")
}
