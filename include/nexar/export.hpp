#pragma once

/// Marks what the shared library shows; everything else is hidden.
#if defined(NEXAR_STATIC)
#define NEXAR_EXPORT
#else
#define NEXAR_EXPORT __attribute__((visibility("default")))
#endif
