module verbatim.internal/test/integration

go 1.26.0
