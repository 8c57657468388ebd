# The binary is built beforehand (make images), so that no other image is needed.
FROM scratch
COPY bin/auditview /auditview
ENV VERBATIM_AUDITVIEW_ADDR=0.0.0.0:8081 \
    VERBATIM_AUDITVIEW_METRICS_ADDR=0.0.0.0:9465 \
    VERBATIM_AUDITVIEW_INTERNAL_ADDR=0.0.0.0:8082
USER 65532:65532
EXPOSE 8081 8082 9465
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=6 CMD ["/auditview", "health"]
ENTRYPOINT ["/auditview"]
CMD ["serve"]
