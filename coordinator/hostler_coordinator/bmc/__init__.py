"""Out-of-band power: carries out decided BMC operations in killable workers; it never decides and knows no store."""

from __future__ import annotations
