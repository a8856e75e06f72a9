"""Energy account of a program: by cause, per pair, per token."""

from oscc.account.account import account, exact_parts
from oscc.account.assumptions import Assumption, assumptions
from oscc.account.balance import delivered_energy_J, measured
from oscc.account.energy_account import CAUSES, EnergyAccount, energy_table

__all__ = [
    "CAUSES",
    "Assumption",
    "EnergyAccount",
    "account",
    "assumptions",
    "delivered_energy_J",
    "energy_table",
    "exact_parts",
    "measured",
]
