//go:build race

package stress

const racing = true
