module verbatim.internal/cmd/verbatim

go 1.26.0
