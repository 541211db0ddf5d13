#pragma once

/// Marks what libxpu.so exports; everything else is hidden (the layers are compiled with -fvisibility=hidden).
#define XPU_EXPORT __attribute__((visibility("default")))
