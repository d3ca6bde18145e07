import { DRAWINGS } from './drawings.js';
import type { Kind } from './vocabulary.js';

/** Draws an animal: the name decides its coat, so that it looks the same every time. */
export function Illustration({ name, kind }: { name: string; kind: Kind }) {
  return <Picture kind={kind} seed={hash(name)} />;
}

export interface PictureProps {
  readonly kind: Kind;
  /** Selects coat and landscape */
  readonly seed: number;
  /** Extends the landscape to both sides instead of enlarging the animal */
  readonly isWide?: boolean;
}

/** An animal in a landscape. The style sheet sets the colours. */
export function Picture({ kind, seed, isWide = false }: PictureProps) {
  const { sun, hills } = LANDSCAPES[(seed >>> 4) % LANDSCAPES.length] ?? LANDSCAPES[0];
  return (
    <svg
      className="illustration"
      data-kind={kind}
      data-coat={seed % 3}
      viewBox="0 0 320 200"
      preserveAspectRatio={isWide ? 'xMidYMax meet' : 'xMidYMax slice'}
      overflow={isWide ? 'visible' : 'hidden'}
      aria-hidden="true"
    >
      <circle className="backdrop sun" {...sun} />
      <path className="backdrop" d={hills} />
      {DRAWINGS[kind]}
    </svg>
  );
}

const LANDSCAPES = [
  {
    sun: { cx: 70, cy: 58, r: 30 },
    hills:
      'M-700 200 V140 S-480 100 -340 150 S-140 184 -60 158 S90 132 160 156 S300 150 380 128 S560 170 660 154 S900 110 1020 140 V200 Z',
  },
  {
    sun: { cx: 250, cy: 62, r: 38 },
    hills:
      'M-700 200 V150 S-480 170 -340 140 S-140 120 -60 136 S80 168 170 160 S290 116 380 150 S560 120 660 146 S900 170 1020 140 V200 Z',
  },
  {
    sun: { cx: 232, cy: 46, r: 24 },
    hills:
      'M-700 200 V150 S-480 110 -340 140 S-140 170 -60 150 S100 118 180 138 S310 168 380 144 S560 120 660 140 S900 160 1020 150 V200 Z',
  },
] as const;

/** The animal alone, as a small icon. */
export function KindIcon({ kind }: { kind: Kind }) {
  return (
    <svg
      className="illustration icon"
      data-kind={kind}
      data-coat="0"
      viewBox="44 0 250 200"
      aria-hidden="true"
    >
      {DRAWINGS[kind]}
    </svg>
  );
}

/** FNV-1a over UTF-16 code units. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return value;
}
