module verbatim.internal/pkg/platform

go 1.26.0
