import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

interface Address {
  /** Without its port, and without its zone, the link of a link-local IPv6 address (RFC 4007, section 11) */
  readonly ip: string;
  readonly family: 'ipv4' | 'ipv6';
}

/** `1.2.3.4:5678`, `[2001:db8::1]:443`, `[2001:db8::1]`: some proxies forward an address with its port. */
const BRACKETS_OR_PORT = /^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/;

/** An IPv4-mapped IPv6 address as sockets show it, which every IPv4 client of a service on `::` has. */
const MAPPED_IPV4 = /^::ffff:(?=[\d.]+$)/;

/** Parses the address of a socket's peer, or one that a proxy forwarded; undefined for anything else. */
function parseAddress(text: string): Address | undefined {
  const [, bracketed, beforePort] = BRACKETS_OR_PORT.exec(text) ?? [];
  // The zone is split off first: Node.js and ipaddr.js reject some names of interfaces as zones.
  const [ip = '', zone = ''] = (bracketed ?? beforePort ?? text).split('%', 2);
  const version = isIP(ip);
  if (version === 6) return { ip, family: 'ipv6' };
  return version === 4 && zone === '' ? { ip, family: 'ipv4' } : undefined;
}

/**
 * The id under which a client address is counted: IPv4 whole, IPv6 by its /64 (the usual allocation per customer,
 * without which one machine could be 2^64 callers), an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2) as the IPv4
 * address. Ports and zones do not count.
 *
 * Everything that is not an address, such as the peer of a Unix socket, shares the id `unknown`.
 */
export function addressId(text: string | undefined): string {
  if (text !== undefined && isIPv4(text)) return text;
  // ipaddr.js would take 4 µs of every request for a mapped address.
  const address = text === undefined ? undefined : parseAddress(text.replace(MAPPED_IPV4, ''));
  if (address === undefined) return 'unknown';
  if (address.family === 'ipv4') return address.ip;
  const parsed = ipaddr.process(address.ip);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const prefix = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${prefix.join(':')}::/64`;
}

type ProxyTrust = (peer: string | undefined) => boolean;

/**
 * Whether a peer is one of the proxies whose forwarded headers are trusted. Fastify's own `trustProxy` takes no port,
 * rejects many IPv6 zones, and knows the address only once a request has started.
 *
 * @param proxies addresses and CIDR blocks, without zones
 */
export function createProxyTrust(proxies: readonly string[]): ProxyTrust {
  const trusted = new BlockList();
  for (const proxy of proxies) {
    const [ip = '', bits] = proxy.split('/', 2);
    const family = isIPv6(ip) ? 'ipv6' : 'ipv4';
    if (bits === undefined) trusted.addAddress(ip, family);
    else trusted.addSubnet(ip, Number(bits), family);
  }
  return (peer) => {
    const address = peer === undefined ? undefined : parseAddress(peer);
    return address !== undefined && trusted.check(address.ip, address.family);
  };
}

/** The address of the client: the nearest one that is not a trusted proxy's. */
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
