# Two images from one build:
#
#   docker build -t amends .                             the command and the console
#   docker build -t amends-service --target service .    examples/service, to begin from
#
# Each has one static binary, certificates and time zones, and no shell. State that outlives a restart, the witness of the
# ledger above all, is in /var/lib/amends: give it a volume.

FROM golang:1.26-bookworm AS build
ENV GOWORK=off
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/amends ./examples/service && mkdir /out/state

FROM gcr.io/distroless/static-debian12:nonroot AS service
COPY --from=build /out/service /usr/local/bin/service
COPY --from=build --chown=65532:65532 /out/state /var/lib/amends
ENV STATE_DIRECTORY=/var/lib/amends LISTEN=:8080
WORKDIR /var/lib/amends
VOLUME /var/lib/amends
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --retries=6 CMD ["service", "health"]
ENTRYPOINT ["service"]

# Its health check reads the ledger: a console that cannot do that shows nothing. What can speak HTTP asks /readyz.
FROM gcr.io/distroless/static-debian12:nonroot AS amends
COPY --from=build /out/amends /usr/local/bin/amends
COPY --from=build --chown=65532:65532 /out/state /var/lib/amends
ENV STATE_DIRECTORY=/var/lib/amends
WORKDIR /var/lib/amends
VOLUME /var/lib/amends
USER 65532:65532
EXPOSE 7117
HEALTHCHECK --interval=30s --timeout=10s CMD ["amends", "status"]
ENTRYPOINT ["amends"]
