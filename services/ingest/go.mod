module verbatim.internal/services/ingest

go 1.26.0
