module verbatim.internal/build

go 1.26.0
