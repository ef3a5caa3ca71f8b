#pragma once

/// Marks the symbols that the shared library exports; all others are hidden.
#if defined(NEXAR_STATIC)
#define NEXAR_EXPORT
#else
#define NEXAR_EXPORT __attribute__((visibility("default")))
#endif
