# The binary is built beforehand (make images), so that no other image is needed.
FROM scratch
COPY bin/ingest /ingest
ENV VERBATIM_INGEST_ADDR=0.0.0.0:8080 \
    VERBATIM_INGEST_METRICS_ADDR=0.0.0.0:9464
USER 65532:65532
EXPOSE 8080 8083 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=6 CMD ["/ingest", "health"]
ENTRYPOINT ["/ingest"]
CMD ["serve"]
