//! Nodes of a cluster, as far as a worker knows. Their numbers are their places: nodes are added, and none is removed.

use std::net::SocketAddr;

/// Most nodes of a cluster; a server that names more is not believed.
const MAX_NODES: usize = 1_024;

/// A node as it is named and as it is reached.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub contact: String,
    /// What that stands for, where it is known.
    pub address: Option<SocketAddr>,
}

impl Node {
    /// Whether a contact means this node.
    pub fn is_at(&self, contact: &str) -> bool {
        self.contact == contact || self.address.is_some_and(|address| contact.parse() == Ok(address))
    }

    /// The host of its address.
    pub fn host(&self) -> String {
        let named = || self.contact.rsplit_once(':').map_or("", |(host, _)| host).to_owned();
        self.address.map_or_else(named, |address| address.ip().to_string())
    }
}

/// The node at `contact`, added if it is new and not one too many.
pub fn node_at(nodes: &mut Vec<Node>, contact: &str) -> Option<usize> {
    let known = nodes.iter().position(|node| node.is_at(contact));
    if known.is_none() && nodes.len() < MAX_NODES {
        nodes.push(Node {
            contact: contact.to_owned(),
            address: contact.parse().ok(),
        });
        return Some(nodes.len() - 1);
    }
    known
}
