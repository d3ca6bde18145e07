import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { parseAddress } from './client-address.js';

type ProxyTrust = (peer: string | undefined) => boolean;

/**
 * Whether a peer is one of the proxies whose forwarded headers are trusted, in the form of Fastify's `trustProxy`. Its
 * own check takes no port, and rejects many IPv6 zones.
 *
 * A zone in the list must match, because another link may have the same address; without one, any zone does.
 *
 * @param proxies addresses and CIDR blocks
 */
export function createProxyTrust(proxies: readonly string[]): ProxyTrust {
  const blocks = proxies.map(parseBlock);
  return (peer) => {
    const address = peer === undefined ? undefined : parseAddress(peer);
    if (address === undefined) return false;
    const { ip, family, zone } = address;
    return blocks.some((block) => (block.zone === '' || block.zone === zone) && block.list.check(ip, family));
  };
}

/** The address that Fastify's `request.ip` will have: the nearest one that is not a trusted proxy's. */
export function findClientAddress(
  { socket, headers }: IncomingMessage,
  isTrusted: ProxyTrust,
): string | undefined {
  let address = socket.remoteAddress;
  let forwarded = String(headers['x-forwarded-for'] ?? '');
  while (forwarded !== '' && isTrusted(address)) {
    const comma = forwarded.lastIndexOf(',');
    address = forwarded.slice(comma + 1).trim();
    forwarded = forwarded.slice(0, Math.max(comma, 0));
  }
  return address;
}

function parseBlock(text: string): { zone: string; list: BlockList } {
  const [base = '', bits] = text.split('/', 2);
  const address = parseAddress(base);
  if (address === undefined) throw new TypeError(`${text} is neither an address nor a CIDR block`);
  const { ip, family, zone } = address;
  const list = new BlockList();
  if (bits === undefined) list.addAddress(ip, family);
  else list.addSubnet(ip, Number(bits), family);
  return { zone, list };
}
