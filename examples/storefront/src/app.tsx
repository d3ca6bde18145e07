import { useEffect, useState } from 'react';
import { Announcer } from './announcer.js';
import { forgetKey, keepKey, readKey } from './key.js';
import { Shop } from './shop.js';
import { Welcome } from './welcome.js';

/** Shows the shop if this tab has a key that the service accepts; asks for a key otherwise. */
export function App() {
  const [key, setKey] = useState(readKey);
  const [isKeyUnknown, setKeyUnknown] = useState(false);

  useEffect(() => {
    const readAgain = () => setKey(readKey());
    addEventListener('hashchange', readAgain);
    return () => removeEventListener('hashchange', readAgain);
  }, []);

  const enter = (entered: string) => {
    keepKey(entered);
    setKeyUnknown(false);
    setKey(entered);
  };
  const leave = (isUnknown: boolean) => {
    forgetKey();
    setKeyUnknown(isUnknown);
    setKey(undefined);
  };

  return (
    <Announcer>
      {key === undefined ? (
        <Welcome isKeyUnknown={isKeyUnknown} onEnter={enter} />
      ) : (
        <Shop key={key} apiKey={key} onUnknownKey={() => leave(true)} onLeave={() => leave(false)} />
      )}
    </Announcer>
  );
}
