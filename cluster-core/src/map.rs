//! A map without an order that hashes alike in every run and is cloned as everything of a cluster is: by sharing.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

const SHARDS_BITS: u32 = 6;

/// Entries lie in shards. A change copies the shard that it falls into, if a clone of the map has that shard, too.
pub struct HashMap<K, V> {
    shards: Option<Arc<[Shard<K, V>]>>,
}

type Shard<K, V> = Arc<HashTable<(K, V)>>;

impl<K, V> HashMap<K, V> {
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let shards = self.shards.iter().flat_map(|shards| shards.iter());
        shards.flat_map(|shard| shard.iter()).map(|(key, value)| (key, value))
    }

    pub fn len(&self) -> usize {
        self.shards.iter().flat_map(|shards| shards.iter()).map(|shard| shard.len()).sum()
    }
}

impl<K: Hash + Eq, V> HashMap<K, V> {
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (hash, shard) = place(key);
        let entry = self.shards.as_ref()?[shard].find(hash, |(known, _)| known.borrow() == key);
        entry.map(|(_, value)| value)
    }

    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }
}

impl<K: Hash + Eq + Clone, V: Clone> HashMap<K, V> {
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        if !self.contains_key(key) {
            return None;
        }
        let (hash, shard) = place(key);
        let entry = self.shard_mut(shard).find_mut(hash, |(known, _)| known.borrow() == key);
        entry.map(|(_, value)| value)
    }

    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (hash, shard) = place(&key);
        let shard = self.shard_mut(shard);
        if let Some((_, known)) = shard.find_mut(hash, |(known, _)| *known == key) {
            return Some(std::mem::replace(known, value));
        }
        shard.insert_unique(hash, (key, value), |(key, _)| place(key).0);
        None
    }

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if !self.contains_key(key) {
            return None;
        }
        let (hash, shard) = place(key);
        let entry = self.shard_mut(shard).find_entry(hash, |(known, _)| known.borrow() == key).ok()?;
        Some(entry.remove().0.1)
    }

    /// The value of a key, which is made if there is none.
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let (hash, shard) = place(&key);
        let entry = self.shard_mut(shard).entry(hash, |(known, _)| *known == key, |(key, _)| place(key).0);
        &mut entry.or_insert_with(|| (key, V::default())).into_mut().1
    }

    fn shard_mut(&mut self, shard: usize) -> &mut HashTable<(K, V)> {
        let empty = || std::iter::repeat_n(Shard::default(), 1 << SHARDS_BITS).collect();
        Arc::make_mut(&mut Arc::make_mut(self.shards.get_or_insert_with(empty))[shard])
    }
}

/// The hash of a key, and the shard that it belongs to: by bits that the shard's own table does not look at first.
fn place<Q: Hash + ?Sized>(key: &Q) -> (u64, usize) {
    let hash = FxBuildHasher.hash_one(key);
    (hash, (hash >> (56 - SHARDS_BITS)) as usize & ((1 << SHARDS_BITS) - 1))
}

impl<K, V> Clone for HashMap<K, V> {
    fn clone(&self) -> HashMap<K, V> {
        HashMap { shards: self.shards.clone() }
    }
}

impl<K, V> Default for HashMap<K, V> {
    fn default() -> HashMap<K, V> {
        HashMap { shards: None }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for HashMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Hash + Eq + Clone, V: Clone> FromIterator<(K, V)> for HashMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> HashMap<K, V> {
        let mut map = HashMap::default();
        entries.into_iter().for_each(|(key, value)| {
            map.insert(key, value);
        });
        map
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds_and_a_clone_keeps_its_own(
            changes in proptest::collection::vec((0_u16..300, any::<Option<u8>>()), 0..400),
            at in 0_usize..400,
        ) {
            let (mut map, mut model) = (HashMap::<u16, u8>::default(), BTreeMap::new());
            let mut kept = None;
            for (index, (key, value)) in changes.into_iter().enumerate() {
                if index == at {
                    kept = Some((map.clone(), model.clone()));
                }
                match value {
                    Some(value) if value % 2 == 0 => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                    Some(value) => {
                        *map.get_or_default(key) ^= value;
                        *model.entry(key).or_default() ^= value;
                    }
                    None => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
            }
            for (map, model) in kept.into_iter().chain([(map, model)]) {
                prop_assert_eq!(map.len(), model.len());
                let held: BTreeMap<u16, u8> = map.iter().map(|(key, value)| (*key, *value)).collect();
                prop_assert_eq!(held, model);
            }
        }
    }
}
