import { createContext, type ReactNode, useContext, useState } from 'react';

const Announce = createContext<(text: string) => void>(() => {});

/** One polite live region for the whole page, there from the start: those that come with their text are often missed. */
export function Announcer({ children }: { children: ReactNode }) {
  const [text, announce] = useState('');
  return (
    <Announce value={announce}>
      {children}
      <p className="visually-hidden" role="status">
        {text}
      </p>
    </Announce>
  );
}

/** Says something to those who cannot see what has changed. */
export function useAnnounce(): (text: string) => void {
  return useContext(Announce);
}
