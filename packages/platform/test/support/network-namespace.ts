import { execFileSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { hasProgram } from '@animal-store/limits/testing';
import { type Environment, type Program, runCommand } from '@animal-store/platform/testing';

/** Whether this process may create network namespaces. Without the programs, or root, tests are skipped. */
export function canCreateNamespaces(): boolean {
  if (!hasProgram('ip', '-V') || !hasProgram('iptables', '-V')) return false;
  const probe = `probe-${randomBytes(4).toString('hex')}`;
  // A container may be forbidden to, even as root.
  if (!succeeds('ip', 'netns', 'add', probe)) return false;
  execFileSync('ip', ['netns', 'delete', probe]);
  return true;
}

function succeeds(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** A network of its own, connected to the machine's by one cable, on which packets can be lost. */
export class NetworkNamespace {
  /** The machine's address, as programs in the namespace see it */
  readonly hostAddress: string;
  readonly address: string;
  readonly #name = `test-${randomBytes(4).toString('hex')}`;

  constructor() {
    // A range that nobody else uses: RFC 2544.
    const network = `198.18.${randomInt(256)}`;
    this.hostAddress = `${network}.1`;
    this.address = `${network}.2`;
    const cable = `v${this.#name}`;
    ip('netns', 'add', this.#name);
    ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', this.#name);
    ip('address', 'add', `${this.hostAddress}/24`, 'dev', cable);
    ip('link', 'set', cable, 'up');
    ip('-n', this.#name, 'address', 'add', `${this.address}/24`, 'dev', 'eth0');
    ip('-n', this.#name, 'link', 'set', 'eth0', 'up');
    ip('-n', this.#name, 'link', 'set', 'lo', 'up');
  }

  /** Runs a program in the namespace. */
  run(command: string, args: readonly string[], environment: Environment): Program {
    return runCommand('ip', ['netns', 'exec', this.#name, command, ...args], environment);
  }

  /** Loses all packets to and from a port of the machine. Neither side is notified. */
  dropPort(port: number): void {
    this.#dropPackets('OUTPUT', '--dport', port);
    this.#dropPackets('INPUT', '--sport', port);
  }

  /** Loses the packets of existing connections, given by their ports in the namespace. */
  dropConnections(localPorts: readonly number[]): void {
    for (const port of localPorts) {
      this.#dropPackets('OUTPUT', '--sport', port);
      this.#dropPackets('INPUT', '--dport', port);
    }
  }

  /** Stops losing packets. */
  heal(): void {
    this.#iptables('--flush');
  }

  close(): void {
    ip('netns', 'delete', this.#name);
  }

  #dropPackets(chain: string, match: string, port: number): void {
    this.#iptables('-A', chain, '-p', 'tcp', match, String(port), '-j', 'DROP');
  }

  #iptables(...args: string[]): void {
    ip('netns', 'exec', this.#name, 'iptables', ...args);
  }
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
