FROM alpine:3
RUN apk add --no-cache ca-certificates
COPY app /usr/local/bin/app
USER nobody
ENTRYPOINT ["/usr/local/bin/app"]
