FROM rust:1 AS build
WORKDIR /src
COPY . .
RUN cargo build --release

FROM debian:stable-slim
COPY --from=build /src/target/release/app /usr/local/bin/app
USER nobody
CMD ["app"]
