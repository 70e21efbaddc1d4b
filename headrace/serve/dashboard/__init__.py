"""The dashboard: a page and its files, served as they are in the package.

`routes.py` says which files there are and how they are served; `assets/` holds them: HTML, CSS and
JavaScript modules that browsers run without a build step. `assets/vendor/` holds the libraries with
their licences, which `make dashboard-vendor` bundles anew from `bundling/`.
"""
