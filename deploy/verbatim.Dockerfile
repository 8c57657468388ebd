# The operator's commands: bootstrap, migrate, apply, relay. The binary is built
# beforehand (make images). The embedded server of `verbatim up` is not in here.
FROM scratch
COPY bin/verbatim /verbatim
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/verbatim"]
CMD ["--help"]
