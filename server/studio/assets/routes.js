// The pages of the studio: one line each. path is below /studio; a page with rail stands in the rail of a
// database in this order, and g and its key go there. A module is loaded when its page is first shown.

export const routes = [
  {path: '/databases', load: () => import('./pages/databases.js')},
  {path: '/db/:db/documents', rail: 'Documents', icon: 'documents', key: 'd', load: () => import('./pages/documents.js')},
  {path: '/db/:db/doc', under: '/db/:db/documents', load: () => import('./pages/document.js')},
  {path: '/db/:db/new', under: '/db/:db/documents', load: () => import('./pages/new.js')},
  {path: '/db/:db/query', rail: 'Query', icon: 'query', key: 'q', load: () => import('./pages/query.js')},
];
