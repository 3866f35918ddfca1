"""Operations on whole matrices: as loops, and where no library carries them out."""
