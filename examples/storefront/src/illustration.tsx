import { DRAWINGS } from './drawings.js';
import { categoryOf, type Kind } from './vocabulary.js';

/**
 * A drawing for an animal without a photo: its kind by the category, its coat by the name, so that the same animal
 * always looks the same. Colours come from the style sheet.
 */
export function Illustration({ name, categoryId }: { name: string; categoryId: number }) {
  const { kind } = categoryOf(categoryId);
  const seed = hash(name);
  return (
    <svg
      className="illustration"
      data-kind={kind}
      data-coat={seed % 3}
      viewBox="0 0 320 200"
      preserveAspectRatio="xMidYMax slice"
      aria-hidden="true"
    >
      <Scenery turn={(seed >>> 4) % 3} />
      {DRAWINGS[kind]}
    </svg>
  );
}

/** The same drawing small and alone, for a choice of categories. */
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

/** FNV-1a over UTF-16 units: any spread will do. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return value;
}

/** What stands behind the animal: a sun and hills, moved a little from card to card. */
function Scenery({ turn }: { turn: number }) {
  const sun = [
    [70, 58, 30],
    [250, 62, 38],
    [232, 46, 24],
  ][turn] ?? [70, 58, 30];
  const hills = [
    'M-60 200 V158 C20 120 90 132 160 156 S300 150 380 128 V200 Z',
    'M-60 200 V136 C30 128 80 168 170 160 S290 116 380 150 V200 Z',
    'M-60 200 V150 C10 164 100 118 180 138 S310 168 380 144 V200 Z',
  ][turn];
  return (
    <>
      <circle className="backdrop sun" cx={sun[0]} cy={sun[1]} r={sun[2]} />
      <path className="backdrop" d={hills} />
    </>
  );
}
