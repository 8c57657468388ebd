module verbatim.internal/pkg/domain

go 1.26.0
