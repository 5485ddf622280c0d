# The command, and nothing else: jay serve needs no file but its data directory.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN cd cmd/jay && CGO_ENABLED=0 GOWORK=off go build -trimpath -ldflags='-s -w' -o /out/jay . \
    && mkdir -p /out/data && chmod 0700 /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/jay /jay
# A volume takes its owner from the directory of the image.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 8443
STOPSIGNAL SIGTERM
ENTRYPOINT ["/jay"]
CMD ["serve", "--data", "/data", "--listen", "127.0.0.1:8080"]
