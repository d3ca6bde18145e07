import { readFileSync } from 'node:fs';

/** Linux reports the CPU time of a process in hundredths of a second. */
const CPU_TICK_US = 10_000;

/** What one request costs the processes that take part in it, or what they have used so far: microseconds. */
export interface CpuTimes {
  readonly server: number;
  readonly postgres: number;
  readonly redis: number;
}

/** CPU time of all threads of a process since its start, in microseconds. NaN where there is no /proc. */
export function readCpuTime(pid: number | undefined): number {
  return sumTicks(pid, 2);
}

/** The same with its children, those that have ended included: PostgreSQL has a process for each connection. */
export function readTreeCpuTime(pid: number | undefined): number {
  const children = readProc(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number);
  return children.reduce((sum, child) => sum + (readCpuTime(child) || 0), sumTicks(pid, 4));
}

/** The most memory that was resident since the start of a process, in MB. NaN where there is no /proc. */
export function readPeakMemory(pid: number | undefined): number {
  return Number(/VmHWM:\s*(\d+)/.exec(readProc(pid, 'status'))?.[1]) / 1024;
}

/** Adds up the first of: user time, system time, and the same of the children that have ended. */
function sumTicks(pid: number | undefined, count: number): number {
  const times = readStat(pid)
    .slice(11, 11 + count)
    .map(Number);
  return times.length === 0 ? Number.NaN : times.reduce((sum, time) => sum + time) * CPU_TICK_US;
}

/** The fields of /proc/PID/stat after the name of the program, which may contain spaces. */
function readStat(pid: number | undefined): string[] {
  return readProc(pid, 'stat').split(') ').at(-1)?.split(' ') ?? [];
}

/** Empty where there is no /proc, and for a process that has ended. */
function readProc(pid: number | undefined, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
