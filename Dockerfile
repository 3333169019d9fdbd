# The image of a release: one static binary, the authorities that TLS trusts, and nothing else. No shell, no package manager.
# Its context is made by `.ci/release image`, which also builds it; where an engine is at hand:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=… --build-arg REVISION=… target/release-files/context
FROM scratch
ARG TARGETARCH
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="Tidegate" \
      org.opencontainers.image.description="From a git commit to a fully rolled-out, verified version in Kubernetes" \
      org.opencontainers.image.url="https://github.com/tidegate/tidegate" \
      org.opencontainers.image.source="https://github.com/tidegate/tidegate" \
      org.opencontainers.image.documentation="https://github.com/tidegate/tidegate/tree/main/docs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="Tidegate" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
COPY root/ /
COPY ${TARGETARCH}/tidegate /usr/bin/tidegate
ENV PATH=/usr/bin HOME=/tmp SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/usr/bin/tidegate"]
