import { useEffect, useState } from 'react';
import { Announcer } from './announcer.js';
import { forgetKey, keepKey, readKey } from './key.js';
import { Shop } from './shop.js';
import { Welcome } from './welcome.js';

/** Asks for a key, and shows the shop to who has one that the service knows. */
export function App() {
  const [key, setKey] = useState(readKey);
  const [isRefused, setRefused] = useState(false);

  useEffect(() => {
    const readAgain = () => setKey(readKey());
    addEventListener('hashchange', readAgain);
    return () => removeEventListener('hashchange', readAgain);
  }, []);

  const enter = (entered: string) => {
    keepKey(entered);
    setRefused(false);
    setKey(entered);
  };
  const leave = (refused: boolean) => {
    forgetKey();
    setRefused(refused);
    setKey(undefined);
  };

  return (
    <Announcer>
      {key === undefined ? (
        <Welcome isRefused={isRefused} onEnter={enter} />
      ) : (
        <Shop key={key} apiKey={key} onRefused={() => leave(true)} onLeave={() => leave(false)} />
      )}
    </Announcer>
  );
}
