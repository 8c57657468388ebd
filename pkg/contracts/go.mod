module verbatim.internal/pkg/contracts

go 1.26.0
