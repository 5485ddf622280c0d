// The pages of the studio: one line each. path is below /studio; a page with rail stands in the rail of a
// database in this order, and g and its key go there. A module is loaded when its page is first shown.

export const routes = [
  {path: '/databases', load: () => import('./pages/databases.js')},
  {path: '/db/:db/documents', rail: 'Documents', icon: 'documents', key: 'd', load: () => import('./pages/documents.js')},
  {path: '/db/:db/doc', under: '/db/:db/documents', load: () => import('./pages/document.js')},
  {path: '/db/:db/new', under: '/db/:db/documents', load: () => import('./pages/new.js')},
  {path: '/db/:db/query', rail: 'Query', icon: 'query', key: 'q', load: () => import('./pages/query.js')},
  {path: '/db/:db/indexes', rail: 'Indexes', icon: 'indexes', key: 'i', load: () => import('./pages/indexes.js')},
  {path: '/db/:db/ids', rail: 'IDs', icon: 'ids', key: 'n', load: () => import('./pages/ids.js')},
  {path: '/db/:db/changes', rail: 'Changes', icon: 'changes', key: 'c', load: () => import('./pages/changes.js')},
  {path: '/db/:db/io', rail: 'Transfer', icon: 'io', key: 'x', load: () => import('./pages/io.js')},
  {path: '/db/:db/patch', rail: 'Patch', icon: 'patch', key: 'p', load: () => import('./pages/patch.js')},
  {path: '/db/:db/statistics', rail: 'Statistics', icon: 'statistics', key: 's', load: () => import('./pages/statistics.js')},
  {path: '/db/:db/operations', rail: 'Operations', icon: 'operations', key: 'o', load: () => import('./pages/operations.js')},
  {path: '/db/:db/backup', rail: 'Backup', icon: 'backup', key: 'k', load: () => import('./pages/backup.js')},
  {path: '/db/:db/settings', rail: 'Settings', icon: 'settings', key: 't', load: () => import('./pages/settings.js')},
];
