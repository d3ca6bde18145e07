/*
 * Exits with 0 while the service in this container is ready, for the container's HEALTHCHECK: the image has no curl.
 * The address to listen on serves to connect, too: on Linux, 0.0.0.0 and :: then mean this machine.
 */
const TIMEOUT_MS = 4_000;

const { HOST, PORT, METRICS_PORT } = process.env;
const host = HOST?.includes(':') ? `[${HOST}]` : HOST || '127.0.0.1';
const url = `http://${host}:${METRICS_PORT || PORT || 3000}/health/ready`;
try {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  process.stdout.write(`${await response.text()}\n`);
  process.exitCode = response.ok ? 0 : 1;
} catch (error) {
  process.stderr.write(`${url}: ${error.cause?.message ?? error.message}\n`);
  process.exitCode = 1;
}
