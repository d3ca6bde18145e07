# The service without the embedded PostgreSQL and Prisma Studio. docs/deploy.md explains how to run it.
#
#   docker build --tag animal-store .
#   docker build --tag animal-store --secret id=npmrc,src=$HOME/.npmrc .     # with a registry or mirror of your own

# An image with Node.js 24.6 or later (see NODE_OPTIONS), npm and a shell. Renovate adds its digest, and renews it.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS manifests
WORKDIR /app
COPY .npmrc package.json package-lock.json ./
COPY packages/batch-loader/package.json packages/batch-loader/
COPY packages/client/package.json packages/client/
COPY packages/client-core/package.json packages/client-core/
COPY packages/compatibility/package.json packages/compatibility/
COPY packages/embedded-postgres/package.json packages/embedded-postgres/
COPY packages/http-server/package.json packages/http-server/
COPY packages/limits/package.json packages/limits/
COPY packages/platform/package.json packages/platform/
COPY packages/prisma-dev-stub/package.json packages/prisma-dev-stub/
COPY packages/reference-page/package.json packages/reference-page/
COPY packages/tools/package.json packages/tools/

FROM manifests AS dependencies
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=cache,target=/root/.npm npm ci --omit=dev --omit=optional
# Of Prisma's query compilers for five databases and two module systems, the service loads one: 60 MB less. The links
# lead to the workspaces, which only the build and development need, as do source maps of the packages.
RUN find node_modules -name '*.map' -type f -delete && \
    find node_modules/@prisma/client/runtime -name '*.wasm-base64.*' ! -name '*.postgresql.*.mjs' -delete && \
    rm -r node_modules/@animal-store

FROM manifests AS build
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=cache,target=/root/.npm npm ci
COPY . .
RUN npm run build

FROM ${NODE_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Animal Store Service" \
      org.opencontainers.image.description="The API of an animal store, over REST, tRPC and the Model Context Protocol" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
WORKDIR /app
# The layer with the dependencies comes first: a release that changes none of them does not transfer it again.
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY scripts/node-version.js scripts/
COPY prisma prisma
COPY --from=build /app/dist dist
# Half of the container's memory for the heap, per process; the rest is for buffers, code and connections.
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-old-space-size-percentage=50 \
    APP_ENV=production \
    HOST=0.0.0.0
# By number, so that Kubernetes can tell that it is not root. All files belong to root: the service writes none.
USER 1000:1000
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "dist/node_modules/@animal-store/platform/dist/process/healthcheck.js"]
ENTRYPOINT ["node"]
CMD ["dist/main.js"]
