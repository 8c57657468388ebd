module verbatim.internal/services/auditview

go 1.26.0
