# syntax=docker/dockerfile:1
# The image of every component that runs in a cluster: entourage controllers, webhook, proxy and agent, without the embedded API server.
#
#   docker build -t registry.example.com/entourage:0.1.0 .
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example.com/entourage:0.1.0 --push .
#
# The builder runs on the machine's own platform and compiles for the wanted one, so that no emulator is needed. glibc rather than musl:
# the memory that docs/performance.md states is that of glibc's allocator.
ARG RUST_VERSION=1.95.0

FROM --platform=$BUILDPLATFORM rust:${RUST_VERSION}-bookworm AS build
ARG TARGETPLATFORM
ARG BUILDPLATFORM
# The compiler of the image is the one that rust-toolchain.toml names; without this rustup would fetch clippy and rustfmt, too.
ARG RUST_VERSION
ENV RUSTUP_TOOLCHAIN=${RUST_VERSION} CARGO_TERM_COLOR=never
WORKDIR /src
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]

# ring and Lua are C: they take a compiler of the target as well.
RUN <<END
case "$TARGETPLATFORM" in
    linux/amd64) arch=x86_64 ;;
    linux/arm64) arch=aarch64 ;;
    *) echo "no recipe for $TARGETPLATFORM: linux/amd64 or linux/arm64" >&2; exit 1 ;;
esac
target="$arch-unknown-linux-gnu"
rustup target add "$target"
if [[ "$TARGETPLATFORM" != "$BUILDPLATFORM" ]]; then
    apt-get update -q
    apt-get install -q -y --no-install-recommends "gcc-${arch//_/-}-linux-gnu" "libc6-dev-${TARGETPLATFORM#linux/}-cross"
    rm -rf /var/lib/apt/lists/*
    name="${target//-/_}"
    {
        echo "export CC_$name=$arch-linux-gnu-gcc AR_$name=$arch-linux-gnu-ar"
        echo "export CARGO_TARGET_${name^^}_LINKER=$arch-linux-gnu-gcc"
    } >/etc/target
fi
echo "export CARGO_BUILD_TARGET=$target" >>/etc/target
END

COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,id=target-$TARGETPLATFORM,target=/src/target <<END
. /etc/target
cargo build --locked --profile container --package entourage --no-default-features
install -D "target/$CARGO_BUILD_TARGET/container/entourage" /out/entourage
END

# glibc, libgcc and CA certificates; no shell, no package manager. Its user is 65532.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="entourage" \
    org.opencontainers.image.description="Propagates Kubernetes workloads, together with their dependencies, to many clusters" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/entourage /usr/bin/entourage
USER 65532:65532
# It writes no file: the root filesystem may be read-only.
ENTRYPOINT ["/usr/bin/entourage"]
