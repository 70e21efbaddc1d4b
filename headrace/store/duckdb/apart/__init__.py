"""Answer queries in a process of their own, from columns that the store's process handed over."""
