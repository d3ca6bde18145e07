import type { ReactNode } from 'react';

export interface RingProps {
  readonly className: string;
  /** Width and height of the drawing, in its own units */
  readonly size: number;
  readonly radius: number;
  /** How much of the ring is filled, from 0 to 1 */
  readonly share: number;
  readonly children?: ReactNode;
}

/** A ring that fills clockwise. Its end is round, so that an arc of length 0 would still show as a dot. */
export function Ring({ className, size, radius, share, children }: RingProps) {
  const circumference = 2 * Math.PI * radius;
  const circle = { cx: size / 2, cy: size / 2, r: radius };
  return (
    <svg className={className} viewBox={`0 0 ${size} ${size}`} aria-hidden="true">
      <circle className="track" {...circle} />
      {share > 0 && (
        <circle
          className="arc"
          {...circle}
          strokeDasharray={circumference}
          strokeDashoffset={circumference * (1 - share)}
          transform={`rotate(-90 ${size / 2} ${size / 2})`}
        />
      )}
      {children}
    </svg>
  );
}
