import { createContext, type ReactNode, useContext, useState } from 'react';

const Announce = createContext<(text: ReactNode) => void>(() => {});

/** The page's only live region, rendered from the start: screen readers often miss one that is added with its text. */
export function Announcer({ children }: { children: ReactNode }) {
  const [text, announce] = useState<ReactNode>('');
  return (
    <Announce value={announce}>
      {children}
      <p className="visually-hidden" role="status">
        {text}
      </p>
    </Announce>
  );
}

/** Returns a function that tells screen reader users what has changed. */
export function useAnnounce(): (text: ReactNode) => void {
  return useContext(Announce);
}
