// Compressed saved states. A module of its own, so that users of the library never see the compressor.
module github.com/airlock-ecs/airlock/snapshot/zstd

go 1.26

replace github.com/airlock-ecs/airlock => ../..

require (
	github.com/airlock-ecs/airlock v0.0.0-00010101000000-000000000000
	github.com/klauspost/compress v1.20.4
	github.com/stretchr/testify v1.12.1
	github.com/zeebo/xxh3 v1.1.0
)

require (
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.30.0 // indirect
)
