// The pages of the studio: one line each. path is below /studio; a page with rail stands in the rail of a
// database in this order, and g and its key go there. A module is loaded when its page is first shown.

export const routes = [
  {path: '/databases', load: () => import('./pages/databases.js')},
  {path: '/db/:db/documents', rail: 'Documents', icon: 'documents', key: 'd', load: () => import('./pages/documents.js')},
];
